/* secret.h - the secret that the processes of a fabric on several hosts have in common. */
#ifndef HCA_SECRET_H
#define HCA_SECRET_H

enum { HCA_SECRET_BYTES = 32 };

/*
 * The secret: `given_hex`, 64 hexadecimal digits, if it is not NULL; else the contents of the file
 * SOFTHCA_SECRET_FILE; else of ~/.softhca/secret, which is made with mode 0600 at first use.  A
 * file that its group or others may access is refused.  0, or -errno with the line set (hca_fail),
 * which has nothing of the secret.
 */
int hca_secret_load(const char *given_hex, unsigned char secret[HCA_SECRET_BYTES]);

#endif
