/* SPDX-License-Identifier: GPL-2.0 */
/* ib_core and uverbs: helpers for functions that are inline or macros there. */
#ifndef XROCE_HELPERS_IB_H
#define XROCE_HELPERS_IB_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

struct attribute_group;

/**
 * struct xrdma_ib_gid_info - a GID attribute without pointers
 * @gid: the GID.
 * @mac: hardware address of its interface.
 * @index: in the table of the port.
 * @vlan: VLAN of the interface, 0xffff if none.
 * @port: port number.
 * @kind: enum ib_gid_type.
 * @ifindex: of the interface, 0 if gone.
 */
struct xrdma_ib_gid_info {
	u8 gid[16];
	u8 mac[6];
	u16 index;
	u16 vlan;
	u32 port;
	u32 kind;
	int ifindex;
};

/**
 * struct xrdma_ib_link - the net device of a port
 * @mtu: its MTU.
 * @speed: enum ib_port_speed.
 * @width: enum ib_port_width.
 * @active: running, with carrier.
 */
struct xrdma_ib_link {
	u32 mtu;
	u16 speed;
	u8 width;
	bool active;
};

extern const struct attribute_group xrdma_ib_device_group;

struct rdma_link_ops;
struct xrdma_link;

/* As in struct rdma_link_ops. */
typedef int (*xrdma_newlink_fn)(const char *name, struct net_device *netdev);
typedef int (*xrdma_dellink_fn)(struct ib_device *dev);

struct xrdma_link *xrdma_link_register(const char *type, u32 driver_id,
				       xrdma_newlink_fn newlink,
				       xrdma_dellink_fn dellink);
void xrdma_link_unregister(struct xrdma_link *l);
const struct rdma_link_ops *xrdma_link_ops(void);
struct ib_device *xrdma_ib_alloc_device(size_t size, struct net *net);
void xrdma_ib_setup_device(struct ib_device *dev, struct net_device *netdev,
			   const char *description);
int xrdma_ib_link_read(struct ib_device *dev, u32 port,
		       struct xrdma_ib_link *link);
bool xrdma_ib_port_active(struct ib_device *dev, u32 port);
void xrdma_ib_gid_read(const struct ib_gid_attr *attr,
		       struct xrdma_ib_gid_info *info);
u16 xrdma_ib_udp_sport(u32 flow_label, u32 local_qpn, u32 remote_qpn);
void xrdma_ib_fw_version(char *text, size_t len, u64 version);
struct ib_ucontext *xrdma_ib_udata_context(const struct ib_udata *udata);
struct ib_udata *xrdma_ib_attrs_udata(struct uverbs_attr_bundle *attrs);
int xrdma_ib_group(struct ib_device *dev, u32 port, u64 cookie, const u8 *gid,
		   bool join);
u32 xrdma_ib_dm_handle(struct uverbs_attr_bundle *attrs);
int xrdma_ib_port_speed(struct ib_device *dev, u32 port, u64 *speed);
bool xrdma_ib_target_opened(struct ib_qp *qp);
void xrdma_ib_track_qp(struct ib_qp *qp);
void xrdma_ib_untrack_qp(struct ib_qp *qp);
bool xrdma_ib_is_adaptive(const struct ib_device *dev);
void xrdma_ib_show_adaptive(struct ib_cq *cq, bool on);
void xrdma_ib_end_polling(struct ib_cq *cq);
void xrdma_ib_flush_work(struct work_struct *work);

#endif /* XROCE_HELPERS_IB_H */
