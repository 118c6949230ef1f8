/* link.c - what concerns no queue pair, or a queue pair that both links know: both are asked. */
#include "softhca/object/link.h"

#include "softhca/object/qp.h"

bool hca_links_quiesce(struct hca_fabric *f, struct hca_qp *only)
{
	bool quiet = f->link->quiesce(f, only);

	return (!f->wire || f->wire->quiesce(f, only)) && quiet;
}

void hca_links_mr_published(struct hca_fabric *f, const struct hca_mr *mr)
{
	f->link->mr_published(f, mr);
	if (f->wire)
		f->wire->mr_published(f, mr);
}

void hca_links_mr_withdrawn(struct hca_fabric *f)
{
	f->link->mr_withdrawn(f);
	if (f->wire)
		f->wire->mr_withdrawn(f);
}

void hca_links_look(struct hca_fabric *f)
{
	f->link->look(f);
	if (f->wire)
		f->wire->look(f);
}

int hca_links_qp_make(struct hca_qp *qp)
{
	const struct hca_fabric *f = qp->fabric;
	int rc = f->link->qp_make(qp);

	return rc || !f->wire ? rc : f->wire->qp_make(qp);
}

void hca_links_qp_free(struct hca_qp *qp)
{
	const struct hca_fabric *f = qp->fabric;

	f->link->qp_free(qp);
	if (f->wire)
		f->wire->qp_free(qp);
}

void hca_links_qp_reset(struct hca_qp *qp)
{
	const struct hca_fabric *f = qp->fabric;

	f->link->qp_reset(qp);
	if (f->wire)
		f->wire->qp_reset(qp);
}
