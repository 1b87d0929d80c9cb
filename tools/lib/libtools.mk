# SPDX-License-Identifier: GPL-2.0
# For the Makefiles of programs that use the code in C of this directory: their programs
# depend on $(libtools) and link with it.
tools-lib := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
libtools := $(O).o/libtools.a
INC += -I$(tools-lib)

$(libtools): FORCE
	@$(MAKE) -s -C $(tools-lib) O=$(abspath $(O)) CC="$(CC)" CFLAGS="$(CFLAGS)" all

FORCE:
.PHONY: FORCE
