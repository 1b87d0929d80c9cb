/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Input of bindgen for crate `rdma`. Only items of include/rdma,
 * include/uapi/rdma, rust/helpers and rust/rdma become Rust items. Every other
 * type comes from the `kernel` crate's own bindings (see bindgen_parameters).
 */
#include <rdma/ib_verbs.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_umem.h>
#include <rdma/rdma_netlink.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_types.h>
#include <rdma/xroce-abi.h>

#include "../helpers/helpers.h"
#include "verbs/ib.h"
#include "verbs/uverbs.h"
