// SPDX-License-Identifier: GPL-2.0
/*
 * mprr-handler - a hardware handler (scsi_dh) that answers as a test wants it.
 *
 * DOC: test handler
 *
 * Arrays that refuse or delay an activation are not to be had in a guest.
 * This handler attaches to any SCSI disk; what it answers are its parameters,
 * which the test writes.  Built for the debug kernels only.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <scsi/scsi_device.h>
#include <scsi/scsi_dh.h>

static int result;
module_param(result, int, 0644);
MODULE_PARM_DESC(result, "what an activation ends with (SCSI_DH_...), as long as times is not 0");

static int times;
module_param(times, int, 0644);
MODULE_PARM_DESC(times, "so many activations end with result, the others with SCSI_DH_OK");

static int delay_ms;
module_param(delay_ms, int, 0644);
MODULE_PARM_DESC(delay_ms, "how long an activation takes");

static int count;
module_param(count, int, 0644);
MODULE_PARM_DESC(count, "activations that have begun");

static int attach_result;
module_param(attach_result, int, 0644);
MODULE_PARM_DESC(attach_result, "what attaching ends with (SCSI_DH_...)");

static char words[64];
module_param_string(words, words, sizeof(words), 0444);
MODULE_PARM_DESC(words, "the parameters that it was given last, with commas; \"bad\" is refused");

static int handler_attach(struct scsi_device *sdev)
{
	return attach_result;
}

static void handler_detach(struct scsi_device *sdev)
{
}

/* Only one at a time: the module's activations run on an ordered workqueue. */
static int handler_activate(struct scsi_device *sdev, activate_complete fn, void *data)
{
	int r = SCSI_DH_OK;

	count++;
	if (times > 0) {
		times--;
		r = result;
	}
	if (delay_ms)
		msleep(delay_ms);
	if (fn)
		fn(data, r);
	return 0;
}

/* @params: "count\0word\0word\0" */
static int handler_set_params(struct scsi_device *sdev, const char *params)
{
	unsigned int i, nr;
	int used = 0;

	if (kstrtouint(params, 10, &nr))
		return -EINVAL;
	for (i = 0; i < nr; i++) {
		params += strlen(params) + 1;
		if (!strcmp(params, "bad"))
			return -EINVAL;
		used += scnprintf(words + used, sizeof(words) - used, "%s%s",
				  i ? "," : "", params);
	}
	return 0;
}

static struct scsi_device_handler handler = {
	.name		= "mprr_test",
	.module		= THIS_MODULE,
	.attach		= handler_attach,
	.detach		= handler_detach,
	.activate	= handler_activate,
	.set_params	= handler_set_params,
};

static int __init handler_init(void)
{
	return scsi_register_device_handler(&handler);
}

static void __exit handler_exit(void)
{
	scsi_unregister_device_handler(&handler);
}

module_init(handler_init);
module_exit(handler_exit);
MODULE_DESCRIPTION("hardware handler for the tests of dm-multipath-rr");
MODULE_LICENSE("GPL");
