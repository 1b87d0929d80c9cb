/* SPDX-License-Identifier: GPL-2.0 */
/* Commands that name no object, for cases in which the file cannot have any object. */
#ifndef SELFTEST_BARE_COMMANDS_H
#define SELFTEST_BARE_COMMANDS_H

#include "commands.h"

extern const struct command bare[];

void fill_cq(struct owned *self, void *request);

/* Each of them by call WAY must give errno WANTED. */
void expect_of_bare(struct owned *self, unsigned int way, int wanted);

#endif /* SELFTEST_BARE_COMMANDS_H */
