// SPDX-License-Identifier: GPL-2.0
#include "both.h"

void share_devices(struct both *self)
{
	self->pair.on = self->owned.on;
}
