/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C helpers. bindgen reads this file, so that the Rust side calls exactly what
 * the C side defines.
 */
#ifndef XROCE_HELPERS_H
#define XROCE_HELPERS_H

#include "services.h"

#endif /* XROCE_HELPERS_H */
