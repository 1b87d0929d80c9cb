/* SPDX-License-Identifier: GPL-2.0 */
#ifndef XROCE_HELPERS_IB_H
#define XROCE_HELPERS_IB_H

#include <rdma/ib_verbs.h>

#endif /* XROCE_HELPERS_IB_H */
