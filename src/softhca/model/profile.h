/*
 * profile.h - names for specs: built-in ones and those from files.
 *
 * Files, in this order, each optional except the first:
 *	$SOFTHCA_PROFILES, if set: instead of the others; empty: none
 *	$XDG_CONFIG_HOME/softhca/profiles, else ~/.config/softhca/profiles
 *	SYSCONFDIR/softhca/profiles
 *
 * A line is NAME SPEC [SUMMARY]; '#' begins a comment, empty lines are skipped.
 * The spec may begin with a profile defined before.  Names are unique.
 */
#ifndef HCA_PROFILE_H
#define HCA_PROFILE_H

#include <stddef.h>

enum { HCA_PROFILES_MAX = 256 };

struct hca_profile {
	const char *name, *spec, *summary;
};

struct hca_profiles {
	unsigned count;
	struct hca_profile item[HCA_PROFILES_MAX];
	char *text[3];			/* contents of the files; hca_profiles_free */
};

/* The built-in ones: no files, nothing to free. */
void hca_profiles_own(struct hca_profiles *all);

/*
 * Load all profiles.  0, or -errno with "spec: FILE:LINE: the error" in why and
 * nothing to be freed.
 */
int hca_profiles_load(struct hca_profiles *all, char *why, size_t why_size);
void hca_profiles_free(struct hca_profiles *all);

const struct hca_profile *hca_profile_find(const struct hca_profiles *all, const char *name);

#endif
