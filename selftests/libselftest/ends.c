// SPDX-License-Identifier: GPL-2.0
#include "ends.h"

void make_ends(struct pair *self)
{
	make_end(&self->a, self->on.name[0], self->on.gid_index[0]);
	make_end(&self->b, self->on.name[1], self->on.gid_index[1]);
}

void join(struct pair *self)
{
	connect_end(&self->a, &self->b);
	connect_end(&self->b, &self->a);
}

void make_pair(struct pair *self)
{
	make_ends(self);
	join(self);
}

void free_end(struct end *e)
{
	CHECK(!ibv_destroy_qp(e->qp));
	CHECK(!ibv_destroy_cq(e->cq));
	CHECK(!ibv_dereg_mr(e->mr));
	CHECK(!ibv_dealloc_pd(e->pd));
	CHECK(!ibv_close_device(e->ctx));
	free(e->buf);
}

void free_pair(struct pair *self)
{
	free_end(&self->a);
	free_end(&self->b);
}
