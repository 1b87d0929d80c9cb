// SPDX-License-Identifier: GPL-2.0
/*
 * Measures how long one thread takes to register memory and to deregister it.
 *
 *   bench-register DEVICE SIZE MS
 *
 * Prints the medians of both, in microseconds.
 */
#include "check.h"

#define MAX_TIMES (1 << 16)

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *took, int n)
{
	qsort(took, n, sizeof(*took), by_value);
	return took[n / 2] * 1e6;
}

int main(int argc, char **argv)
{
	static double in[MAX_TIMES], out[MAX_TIMES];
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	double start, end;
	size_t size;
	void *buf;
	int n = 0;

	if (argc != 4 || atoi(argv[2]) < 1)
		return 2;
	size = atoi(argv[2]);
	ctx = open_device(argv[1]);
	CHECK(pd = ibv_alloc_pd(ctx));
	CHECK(buf = aligned_alloc(4096, (size + 4095) & ~(size_t)4095));
	memset(buf, 1, size);
	end = now() + atof(argv[3]) / 1000;
	do {
		struct ibv_mr *mr;

		start = now();
		mr = ibv_reg_mr(pd, buf, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		CHECK(mr);
		in[n] = now() - start;
		start = now();
		CHECK(!ibv_dereg_mr(mr));
		out[n++] = now() - start;
	} while (now() < end && n < MAX_TIMES);
	printf("%.2f %.2f\n", median(in, n), median(out, n));
	return 0;
}
