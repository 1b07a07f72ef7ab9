// SPDX-License-Identifier: GPL-2.0
/* call_rcu_hurry(): since 6.2, when call_rcu() became lazy. */
#include <linux/rcupdate.h>

void probe(struct rcu_head *head, rcu_callback_t func);
void probe(struct rcu_head *head, rcu_callback_t func)
{
	call_rcu_hurry(head, func);
}
