/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every C helper of the module. bindgen reads this file, so that the Rust side
 * calls exactly what the C side defines.
 */
#ifndef XROCE_HELPERS_H
#define XROCE_HELPERS_H

#include "ib.h"
#include "services.h"
#include "uverbs.h"

#endif /* XROCE_HELPERS_H */
