/* SPDX-License-Identifier: GPL-2.0 */
/* Software interrupts. */
#ifndef XRDMA_SERVICES_IRQ_H
#define XRDMA_SERVICES_IRQ_H

#include <linux/types.h>

struct xrdma_vector;
struct xrdma_vectors;

/*
 * The handler of an interrupt. Interrupts are off: in hard interrupt context, inside
 * xrdma_vector_raise(), or in a forced thread.
 */
typedef void (*xrdma_vector_fn)(void *data);

int xrdma_vectors_init(void);
void xrdma_vectors_exit(void);
struct xrdma_vectors *xrdma_vectors_alloc(__u32 count, xrdma_vector_fn handler);
int xrdma_vectors_start(struct xrdma_vectors *set, const char *prefix,
			void *const *data);
struct xrdma_vector *xrdma_vectors_at(struct xrdma_vectors *set, __u32 index);
int xrdma_vector_bulk_cpu(const struct xrdma_vector *v);
void xrdma_vectors_free(struct xrdma_vectors *set);
void xrdma_vector_raise(struct xrdma_vector *v);
void xrdma_vector_raise_later(struct xrdma_vector *v);

#endif /* XRDMA_SERVICES_IRQ_H */
