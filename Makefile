# SPDX-License-Identifier: GPL-2.0
# xroce on this machine:
#   make                 build the module and the plug-in for the running kernel
#   make install         install them (DESTDIR honoured)
#   make uninstall
#   make clean
# xroce in a throw-away guest (needs root, but no kernel with Rust; see tools/vm):
#   make demo            XRC traffic between two hosts, and what it saves
#   make test            host tests, then guest tests on the stock kernel
#   make test-debug      guest tests on a kernel with KASAN, lockdep, kmemleak...
#   make test-long       all guest tests on both kernels, hosts on a wire, and other suites
#   make bench           xroce, rxe and TCP side by side; XRC by the thousand; tags; events; plots
#   make doc             the pages of Documentation/ and rustdoc of the crates, in build/doc
#   make deb             Debian packages, in build/deb
#   make bundle          the plug-in for containers with any libibverbs, in build/bundle
#   make rust-analyzer   rust-project.json, for the language server of that name
# SUITE=sid|forky|trixie-backports|experimental selects the guest's Debian,
# FLAVOUR=amd64|cloud-amd64|rt-amd64|arm64 its kernel.

KVER  ?= $(shell uname -r)
KDIR  ?= $(firstword $(wildcard /var/lib/xroce/$(KVER)) /lib/modules/$(KVER)/build)
BUILD ?= $(CURDIR)/build
# Where libibverbs' headers are; empty: not looked for (the module alone needs none).
INCLUDE ?= /usr/include

kbuild = $(MAKE) -C $(KDIR) M=$(CURDIR) MO=$(BUILD)/module \
	LOCALVERSION=$(shell echo $(KVER) | sed 's/^[0-9.]*//') \
	$(shell tools/install/compiler $(KDIR))
plugin = $(MAKE) -C tools/libxroce TARGET_DIR=$(BUILD)/cargo
moddir = $(DESTDIR)/lib/modules/$(KVER)/updates

all: module plugin

probe:
	@tools/install/probe $(KDIR) "$(INCLUDE)"

module: probe
	@mkdir -p $(BUILD)/module
	+$(kbuild) modules

plugin: probe
	+$(plugin) all

install:
	@test -e $(BUILD)/module/xroce.ko || { echo "xroce: not built yet: run make first" >&2; exit 1; }
	install -d $(moddir)
	strip --strip-debug -o $(moddir)/xroce.ko $(BUILD)/module/xroce.ko
	+$(plugin) install
	$(if $(DESTDIR),,depmod $(KVER))

uninstall:
	rm -f $(moddir)/xroce.ko
	+$(plugin) uninstall
	$(if $(DESTDIR),,depmod $(KVER))

bundle: probe
	+$(plugin) BUNDLE=$(BUILD)/bundle bundle

clean:
	rm -rf $(BUILD)

demo:
	@tools/demo/host

bench:
	@tools/bench/host $(BUILD)/bench

doc:
	@tools/vm/doc $(BUILD)/doc

deb:
	@tools/vm/deb $(BUILD)/deb

rust-analyzer:
	@tools/vm/rust-analyzer

test test-debug test-long:
	@tools/vm/check $@

.PHONY: all probe module plugin bundle install uninstall clean demo bench doc deb \
	rust-analyzer test test-debug test-long
