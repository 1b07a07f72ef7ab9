# SPDX-License-Identifier: GPL-2.0
# User verbs; `make help` lists them.  Kernel facts are in Kbuild.

KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build
# Everything that is made goes below build/, the one ignored folder.
OUT := $(CURDIR)/build/ko/$(KVER)
KO ?= $(OUT)/dm-multipath-rr.ko
TAKEOVER ?= 1
DESTDIR ?=
export KVER KO TAKEOVER DESTDIR

all: modules ## build the module for the kernel KVER (default: the running one)

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

modules:
	@[ -d $(KDIR) ] || { echo "no kernel headers in $(KDIR): apt-get install linux-headers-$(KVER)" >&2; exit 1; }
	mkdir -p $(OUT)/probes
	cp -pu Kbuild $(wildcard *.c *.h) $(OUT)
	cp -pu probes/* $(OUT)/probes
	$(MAKE) -C $(KDIR) M=$(OUT) modules

install: ## install the built module; TAKEOVER=0: leave the in-kernel target alone
	sh install/install

uninstall: ## undo `make install`
	sh install/uninstall

demo: ## boot a guest and show a map surviving a pulled path
	scripts/demo

check: ## run every check: lint, builds, all tests on all kernels
	scripts/check

lint: ## checkpatch --strict, sparse, shellcheck, W=1
	scripts/lint

clean: ## remove what was built and measured; keep the guests' images
	@[ ! -d $(CURDIR)/build ] || find $(CURDIR)/build -mindepth 1 -maxdepth 1 ! -name lab -exec rm -rf {} +

distclean: clean ## remove the guests' roots and images, too
	rm -rf $(CURDIR)/build

.PHONY: all help modules install uninstall demo check lint clean distclean
