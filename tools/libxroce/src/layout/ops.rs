// SPDX-License-Identifier: GPL-2.0
//! `struct verbs_context_ops`: its members in order, the version that added each member, and the
//! function of this library.
//!
//! rdma-core keeps the members sorted, so a new member moves all members after it.

use crate::{
    ah,
    context,
    cq,
    device,
    dm,
    mcast,
    mr,
    mw,
    pd,
    qp,
    srq,
    xrcd, //
};

/// A member: name, first rdma-core version that has it (36 for all that is
/// older), our function's address or 0.
type Op = (&'static str, u32, usize);

#[rustfmt::skip]
fn all() -> [Op; 93] {
    [
        ("advise_mr", 36, mr::advise_mr as *const () as usize),
        ("alloc_buf", 64, 0),
        ("alloc_dm", 36, dm::alloc_dm as *const () as usize),
        ("alloc_dmah", 59, 0),
        ("alloc_mw", 36, mw::alloc_mw as *const () as usize),
        ("alloc_null_mr", 36, 0),
        ("alloc_parent_domain", 36, pd::alloc_parent_domain as *const () as usize),
        ("alloc_pd", 36, pd::alloc_pd as *const () as usize),
        ("alloc_td", 36, pd::alloc_td as *const () as usize),
        ("async_event", 36, 0),
        ("attach_counters_point_flow", 36, 0),
        ("attach_mcast", 36, mcast::attach_mcast as *const () as usize),
        ("bind_mw", 36, mw::bind_mw as *const () as usize),
        ("close_xrcd", 36, xrcd::close_xrcd as *const () as usize),
        ("cq_event", 36, 0),
        ("create_ah", 36, ah::create_ah as *const () as usize),
        ("create_comp_cntr", 65, 0),
        ("create_counters", 36, 0),
        ("create_cq", 36, cq::create_cq as *const () as usize),
        ("create_cq_ex", 36, cq::create_cq_ex as *const () as usize),
        ("create_flow", 36, 0),
        ("create_flow_action_esp", 36, 0),
        ("create_qp", 36, qp::create_qp as *const () as usize),
        ("create_qp_ex", 36, qp::create_qp_ex as *const () as usize),
        ("create_rwq_ind_table", 36, 0),
        ("create_srq", 36, srq::create_srq as *const () as usize),
        ("create_srq_ex", 36, srq::create_srq_ex as *const () as usize),
        ("create_wq", 36, 0),
        ("dealloc_dmah", 59, 0),
        ("dealloc_mw", 36, mw::dealloc_mw as *const () as usize),
        ("dealloc_pd", 36, pd::dealloc_pd as *const () as usize),
        ("dealloc_td", 36, pd::dealloc_td as *const () as usize),
        ("dereg_mr", 36, mr::dereg_mr as *const () as usize),
        ("destroy_ah", 36, ah::destroy_ah as *const () as usize),
        ("destroy_comp_cntr", 65, 0),
        ("destroy_counters", 36, 0),
        ("destroy_cq", 36, cq::destroy_cq as *const () as usize),
        ("destroy_flow", 36, 0),
        ("destroy_flow_action", 36, 0),
        ("destroy_qp", 36, qp::destroy_qp as *const () as usize),
        ("destroy_rwq_ind_table", 36, 0),
        ("destroy_srq", 36, srq::destroy_srq as *const () as usize),
        ("destroy_wq", 36, 0),
        ("detach_mcast", 36, mcast::detach_mcast as *const () as usize),
        ("dm_export_dmabuf_fd", 62, 0),
        ("free_buf", 64, 0),
        ("free_context", 36, context::free_context as *const () as usize),
        ("free_dm", 36, dm::free_dm as *const () as usize),
        ("get_srq_num", 36, srq::get_srq_num as *const () as usize),
        ("import_dm", 36, 0),
        ("import_mr", 36, mr::import_mr as *const () as usize),
        ("import_pd", 36, pd::import_pd as *const () as usize),
        ("inc_comp_cntr", 65, 0),
        ("inc_err_comp_cntr", 65, 0),
        ("modify_cq", 36, cq::modify_cq as *const () as usize),
        ("modify_flow_action_esp", 36, 0),
        ("modify_qp", 36, qp::modify_qp as *const () as usize),
        ("modify_qp_rate_limit", 36, 0),
        ("modify_srq", 36, srq::modify_srq as *const () as usize),
        ("modify_wq", 36, 0),
        ("open_qp", 36, qp::open_qp as *const () as usize),
        ("open_xrcd", 36, xrcd::open_xrcd as *const () as usize),
        ("poll_cq", 36, cq::poll_cq as *const () as usize),
        ("post_recv", 36, qp::post_recv as *const () as usize),
        ("post_send", 36, qp::post_send as *const () as usize),
        ("post_srq_ops", 36, srq::post_srq_ops as *const () as usize),
        ("post_srq_recv", 36, srq::post_srq_recv as *const () as usize),
        ("qp_attach_comp_cntr", 65, 0),
        ("query_comp_cntr_caps", 65, 0),
        ("query_device_ex", 36, device::query_device_ex as *const () as usize),
        ("query_ece", 36, 0),
        ("query_port", 36, device::query_port as *const () as usize),
        ("query_port_speed", 62, device::query_port_speed as *const () as usize),
        ("query_qp", 36, qp::query_qp as *const () as usize),
        ("query_qp_data_in_order", 36, 0),
        ("query_rt_values", 36, device::query_rt_values as *const () as usize),
        ("query_srq", 36, srq::query_srq as *const () as usize),
        ("read_comp_cntr", 65, 0),
        ("read_counters", 36, 0),
        ("read_err_comp_cntr", 65, 0),
        ("reg_dm_mr", 36, dm::reg_dm_mr as *const () as usize),
        ("reg_dmabuf_mr", 36, mr::reg_dmabuf_mr as *const () as usize),
        ("reg_mr", 36, mr::reg_mr as *const () as usize),
        ("reg_mr_ex", 59, 0),
        ("req_notify_cq", 36, cq::req_notify_cq as *const () as usize),
        ("rereg_mr", 36, mr::rereg_mr as *const () as usize),
        ("resize_cq", 36, cq::resize_cq as *const () as usize),
        ("set_comp_cntr", 65, 0),
        ("set_ece", 36, 0),
        ("set_err_comp_cntr", 65, 0),
        ("unimport_dm", 36, 0),
        ("unimport_mr", 36, mr::unimport_mr as *const () as usize),
        ("unimport_pd", 36, pd::unimport_pd as *const () as usize),
    ]
}

/// The table for a version of rdma-core.
pub fn table(version: u32) -> Vec<usize> {
    all()
        .into_iter()
        .filter(|&(_, since, _)| since <= version)
        .map(|(_, _, function)| function)
        .collect()
}

/// Names of the members of a version, in order.
#[cfg(test)]
pub fn names(version: u32) -> impl Iterator<Item = &'static str> {
    all()
        .into_iter()
        .filter(move |&(_, since, _)| since <= version)
        .map(|(name, _, _)| name)
}
