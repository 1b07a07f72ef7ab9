#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What: plants one fault by a module made for it (tests/planted) and lets the debug kernel see it.
# Why:  a detector that is off, or a runner that does not read its report, proves nothing.
# limit: 120
# It must FAIL: tests/debug-planted.t runs it alone and checks that; no other run includes it.
. "$(dirname "$0")/lib.sh"

KO=/mprr/ko/planted/mprr-planted.ko
reported() { klog | grep -Eq 'Call Trace|blocked for more'; }

klog_mark
case ${MPRR_PLANT:?} in
hang)
	echo 15 >/proc/sys/kernel/hung_task_timeout_secs
	spawn insmod $KO fault=hang
	wait_until 30 "the hung task is reported" reported
	echo 120 >/proc/sys/kernel/hung_task_timeout_secs
	wait_until 30 "and ends" gone "$SPAWNED"
	rmmod mprr-planted
	;;
leak)
	insmod $KO fault=leak
	rmmod mprr-planted
	;;
*)
	insmod $KO fault="$MPRR_PLANT"
	wait_until 10 "the kernel reports it" reported
	rmmod mprr-planted
	;;
esac
done_testing
