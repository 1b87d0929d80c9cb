/* SPDX-License-Identifier: GPL-2.0 */
/* Registered memory. */
#ifndef XRDMA_SERVICES_MEM_H
#define XRDMA_SERVICES_MEM_H

#include <linux/types.h>

struct page;

/**
 * struct xrdma_mem - memory that a key names, ready for the CPU to touch
 * @pages: array of order-0 pages, or NULL when @va says where the bytes are.
 * @va: kernel address of byte 0, when @pages is NULL.
 * @first: offset of byte 0 in pages[0].
 * @length: bytes.
 */
struct xrdma_mem {
	struct page **pages;
	__u8 *va;
	__u64 first;
	__u64 length;
};

void xrdma_mem_read(const struct xrdma_mem *m, __u64 off, void *to, size_t len);
void xrdma_mem_write(const struct xrdma_mem *m, __u64 off, const void *from,
		     size_t len);
void xrdma_mem_copy(const struct xrdma_mem *from, __u64 from_off,
		    const struct xrdma_mem *to, __u64 to_off, size_t len);
int xrdma_mem_cmpxchg64(const struct xrdma_mem *m, __u64 off, __u64 compare,
			__u64 swap, __u64 *original);
int xrdma_mem_fetch_add64(const struct xrdma_mem *m, __u64 off, __u64 add,
			  __u64 *original);
int xrdma_mem_store64(const struct xrdma_mem *m, __u64 off, __u64 value);
struct page **xrdma_page_array_alloc(size_t n);
void xrdma_page_array_free(struct page **pages);
struct page *xrdma_kernel_page(__u64 addr);

#endif /* XRDMA_SERVICES_MEM_H */
