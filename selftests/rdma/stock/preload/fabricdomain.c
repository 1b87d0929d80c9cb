// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload that lets a program see only the domain of libfabric that
 * FABRIC_DOMAIN names.
 *
 * The verbs provider has two domains for each device: xroce0 for RC, and xroce0-xrc,
 * which it offers to those who use shared receive contexts. fi_pingpong takes the name
 * of a domain. Open MPI has no option for that: it takes both for two devices and
 * distributes the ranks of a host among them (opal/mca/common/ofi).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **info)
{
	static __typeof__(&fi_getinfo) real;
	char *domain = getenv("FABRIC_DOMAIN"), *asked;
	int ret;

	if (!real)
		real = (__typeof__(&fi_getinfo))dlsym(RTLD_NEXT, "fi_getinfo");
	if (!real)
		return -ENOSYS;
	if (!domain || !hints || !hints->domain_attr || hints->domain_attr->name)
		return real(version, node, service, flags, hints, info);
	asked = hints->domain_attr->name;
	hints->domain_attr->name = domain;
	ret = real(version, node, service, flags, hints, info);
	hints->domain_attr->name = asked;
	return ret;
}
