// SPDX-License-Identifier: GPL-2.0
#include <regex.h>

#include "rcvqp.h"

uint32_t create(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr = connected_to(m->arg, &m->client, p->on->gid_index[SERVER]);
	uint32_t qpn = 0;

	CHECK(xroce_dv_is_supported(p->ctx->device));
	CHECK(!xroce_dv_create_xrc_rcv_qp(p->xrcd, &attr, USUAL, &qpn));
	CHECK(qpn > 1 && qpn < 1 << 24);
	return qpn;
}

uint32_t reg(struct peer *p, const struct message *m)
{
	return xroce_dv_reg_xrc_rcv_qp(p->xrcd, m->arg);
}

uint32_t unreg(struct peer *p, const struct message *m)
{
	return xroce_dv_unreg_xrc_rcv_qp(p->xrcd, m->arg);
}

uint32_t state(struct peer *p, const struct message *m)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err = xroce_dv_query_xrc_rcv_qp(p->xrcd, m->arg, &attr, IBV_QP_STATE, &init);

	if (err)
		return 100 + err;
	CHECK(init.qp_type == IBV_QPT_XRC_RECV);
	CHECK(attr.cur_qp_state == attr.qp_state);
	return attr.qp_state;
}

uint32_t to_error(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, IBV_QP_STATE);
}

int shown(uint32_t qpn, int views, int registrations)
{
	char command[64], wanted[128], text[4096];
	regex_t regex;
	size_t i, n;
	int found;
	FILE *f;

	snprintf(command, sizeof(command), "rdma -dd res show qp lqpn %u", qpn);
	snprintf(wanted, sizeof(wanted),
		 "XRC_TGT.*xrcd [1-9][0-9]* .*views %d .*registrations %d([^0-9]|$)",
		 views, registrations);
	f = popen(command, "r");
	CHECK(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	CHECK(n < sizeof(text) - 1);
	CHECK(pclose(f) == 0);
	/* What belongs to a queue pair takes several lines. */
	for (i = 0; i < n; i++)
		if (text[i] == '\n')
			text[i] = ' ';
	CHECK(!regcomp(&regex, wanted, REG_EXTENDED | REG_NOSUB));
	found = !regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return found;
}
