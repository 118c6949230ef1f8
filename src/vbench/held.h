/* held.h - errors of src/verbs in a step whose errors are held (util/err.h). */
#ifndef VBENCH_HELD_H
#define VBENCH_HELD_H

/* Begin such a step: between rg_errors_hold and rg_errors_release. */
void vb_hold(void);
/* End the step: an error of src/verbs is held as this program's.  Returns rc. */
int vb_held(int rc);

#endif
