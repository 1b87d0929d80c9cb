// SPDX-License-Identifier: GPL-2.0
//! libibverbs' private layout, by version.
//!
//! Two structures that a provider shares with libibverbs grow in the middle: `struct verbs_context`
//! (at its head) and `struct verbs_context_ops` (it is kept sorted). The number in a provider's
//! file name does not identify the layout, because several layouts were released under one number.
//! Therefore the real version of the loaded library decides, and an unknown version is refused.

mod ops;

use core::ffi::c_void;
use std::sync::OnceLock;

use crate::sys;
use crate::verbs::{
    IbvContext,
    VerbsContext, //
};

/// A layout, fixed when libibverbs is recognised.
pub struct Layout {
    /// Bytes of `struct verbs_context` before its `struct ibv_context`.
    pub context_head: usize,
    /// `ibv_cmd_get_context` takes descriptors as well.
    pub get_context_has_fds: bool,
    /// `ibv_cmd_create_qp_ex2` takes attributes of the driver as well.
    pub create_qp_has_driver: bool,
    /// Functions at the end of `struct ibv_qp_ex` that it lacks, see [`absent_builders`].
    pub absent_builders: usize,
    /// `struct verbs_context_ops` with our functions; 0 where we have none.
    ops: Vec<usize>,
}

static LAYOUT: OnceLock<Layout> = OnceLock::new();

/// rdma-core versions whose layout and private functions were compared with
/// what this crate declares, all of them (see `check-layout`). Ubuntu 22.04 has
/// the oldest.
const KNOWN: core::ops::RangeInclusive<u32> = 39..=65;

/// Size of the head of `struct verbs_context` in a version.
const fn context_head(version: u32) -> usize {
    // Its newest members come first: three of version 59, one of 62, two
    // of 64.
    const OLD: usize = 320;
    let mut size = OLD;
    if version >= 59 {
        size += 3 * 8;
    }
    if version >= 62 {
        size += 8;
    }
    if version >= 64 {
        size += 2 * 8;
    }
    size
}

/// Functions at the end of `struct ibv_qp_ex` that a version lacks: `wr_flush`, or it and
/// `wr_atomic_write`. What follows the structure in `struct verbs_qp` lies in their place.
const fn absent_builders(version: u32) -> usize {
    (version < 45) as usize + (version < 44) as usize
}

impl Layout {
    fn of(version: u32) -> Option<Self> {
        if !KNOWN.contains(&version) {
            return None;
        }
        Some(Self {
            context_head: context_head(version),
            get_context_has_fds: version >= 57,
            create_qp_has_driver: version >= 64,
            absent_builders: absent_builders(version),
            ops: ops::table(version),
        })
    }

    /// For `verbs_set_ops`.
    pub fn ops(&self) -> *const c_void {
        self.ops.as_ptr().cast()
    }
}

/// Version of rdma-core from the name of its library's file:
/// `libibverbs.so.1.18.65.0` belongs to 65.0.
fn version_in(path: &std::path::Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let numbers = name.strip_prefix("libibverbs.so.")?;
    let mut fields = numbers.split('.');
    let (_abi, _minor, major, _patch) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    if fields.next().is_some() {
        return None;
    }
    major.parse().ok()
}

/// Recognises the loaded libibverbs. Complains on stderr and gives `None`
/// when it is not one this provider knows.
pub fn detect() -> Option<&'static Layout> {
    if let Some(known) = LAYOUT.get() {
        return Some(known);
    }
    let file = sys::file_of(crate::verbs::cmd::verbs_set_ops as *const c_void);
    let real = file.and_then(|f| std::fs::canonicalize(f).ok());
    let Some(real) = real else {
        sys::complain(format_args!(
            "cannot find the file of the loaded libibverbs; not used"
        ));
        return None;
    };
    let layout = version_in(&real).and_then(Layout::of);
    if layout.is_none() {
        sys::complain(format_args!(
            "made for rdma-core {} to {}, not for {}; install the libxroce that belongs to it",
            KNOWN.start(),
            KNOWN.end(),
            real.display()
        ));
    }
    layout.map(|l| LAYOUT.get_or_init(|| l))
}

/// The recognised layout.
///
/// libibverbs calls nothing of ours before [`detect`] found it.
pub fn get() -> Option<&'static Layout> {
    LAYOUT.get()
}

/// The `struct verbs_context` around a context of ours.
pub fn verbs_context(context: *mut IbvContext) -> *mut VerbsContext {
    let head = get().map_or(0, |l| l.context_head);
    // The caller passes a context that `context::alloc` placed there.
    context.cast::<u8>().wrapping_sub(head).cast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn reads_versions() {
        let v = |p| version_in(Path::new(p));
        assert_eq!(v("/usr/lib/x/libibverbs.so.1.18.65.0"), Some(65));
        assert_eq!(v("libibverbs.so.1.14.56.1"), Some(56));
        assert_eq!(v("libibverbs.so.1"), None);
        assert_eq!(v("libibverbs.so.1.18.65"), None);
        assert_eq!(v("libibverbs.so.1.18.65.0.1"), None);
        assert_eq!(v("other.so.1.18.65.0"), None);
    }

    #[test]
    fn refuses_unknown() {
        assert!(Layout::of(65).is_some());
        assert!(Layout::of(39).is_some());
        assert!(Layout::of(38).is_none());
        assert!(Layout::of(66).is_none());
    }

    #[test]
    fn recognises_the_loaded_library() {
        // The library this test is linked against is the installed one.
        assert!(detect().is_some());
    }

    #[test]
    fn size_of_the_table() {
        assert_eq!(ops::table(65).len() * 8, 744);
        assert_eq!(ops::table(56).len(), 76);
        assert_eq!(context_head(65), 368);
    }

    /// Members and sizes as the compiler sees them in rdma-core's source, in
    /// the directory `RDMA_CORE` (see `check-layout`).
    #[test]
    #[ignore = "needs rdma-core's source"]
    fn equals_source() {
        use crate::verbs::*;
        use core::mem::{
            offset_of,
            size_of, //
        };
        let version = std::env::var("RDMA_CORE_VERSION").expect("see check-layout");
        let version: u32 = version.parse().expect("a number");
        assert!(KNOWN.contains(&version), "rdma-core {version} is not known");
        let mut c = String::from("#include <stddef.h>\n#include <infiniband/driver.h>\n");
        let mut check = |expression: String, value: usize| {
            c += &format!("_Static_assert({expression} == {value}, \"{expression}\");\n");
        };
        for (i, name) in ops::names(version).enumerate() {
            check(format!("offsetof(struct verbs_context_ops, {name})"), i * 8);
        }
        check(
            "sizeof(struct verbs_context_ops)".into(),
            ops::table(version).len() * 8,
        );
        check(
            "offsetof(struct verbs_context, context)".into(),
            context_head(version),
        );
        macro_rules! sizes {
            ($($c:literal $rust:ty),* $(,)?) => {
                $(check(concat!("sizeof(struct ", $c, ")").into(), size_of::<$rust>());)*
            };
        }
        sizes!(
            "ibv_context" IbvContext, "ibv_device" IbvDevice, "verbs_device" VerbsDevice,
            "verbs_device_ops" VerbsDeviceOps, "verbs_match_ent" VerbsMatchEnt,
            "ibv_pd" IbvPd, "verbs_mr" VerbsMr, "ibv_mw" IbvMw, "ibv_ah" IbvAh,
            "verbs_xrcd" VerbsXrcd, "ibv_comp_channel" IbvCompChannel, "ibv_cq" IbvCq,
            "ibv_cq_ex" IbvCqEx, "verbs_cq" IbvCqEx, "verbs_srq" VerbsSrq,
            "ibv_wc" IbvWc,
            "ibv_send_wr" IbvSendWr, "ibv_recv_wr" IbvRecvWr, "ibv_sge" IbvSge,
            "ibv_mw_bind" IbvMwBind, "ibv_ops_wr" IbvOpsWr, "ibv_wc_tm_info" IbvWcTmInfo,
            "ibv_tm_cap" IbvTmCap, "ibv_data_buf" IbvDataBuf,
            "ibv_qp_init_attr" IbvQpInitAttr, "ibv_qp_init_attr_ex" IbvQpInitAttrEx,
            "ibv_qp_open_attr" IbvQpOpenAttr, "ibv_srq_init_attr" IbvSrqInitAttr,
            "ibv_srq_init_attr_ex" IbvSrqInitAttrEx, "ibv_xrcd_init_attr" IbvXrcdInitAttr,
            "ibv_cq_init_attr_ex" IbvCqInitAttrEx, "ibv_values_ex" IbvValuesEx,
        );
        let absent = absent_builders(version) * size_of::<usize>();
        for (what, value) in [
            ("sizeof(struct ibv_qp_ex)", size_of::<IbvQpEx>()),
            ("sizeof(struct verbs_qp)", size_of::<VerbsQp>()),
            (
                "offsetof(struct verbs_qp, comp_mask)",
                offset_of!(VerbsQp, comp_mask),
            ),
            ("offsetof(struct verbs_qp, xrcd)", offset_of!(VerbsQp, xrcd)),
        ] {
            check(what.into(), value - absent);
        }
        let newest = [
            ("wr_flush", offset_of!(IbvQpEx, wr_flush)),
            ("wr_atomic_write", offset_of!(IbvQpEx, wr_atomic_write)),
        ];
        for (name, at) in &newest[absent_builders(version)..] {
            check(format!("offsetof(struct ibv_qp_ex, {name})"), *at);
        }
        macro_rules! members {
            ($($c:literal $rust:ty { $($cm:ident $rm:ident),* $(,)? })*) => {
                $($(check(
                    concat!("offsetof(struct ", $c, ", ", stringify!($cm), ")").into(),
                    offset_of!($rust, $rm),
                );)*)*
            };
        }
        members!(
            "ibv_context" IbvContext { cmd_fd cmd_fd, async_fd async_fd,
                num_comp_vectors num_comp_vectors }
            "ibv_mr" IbvMr { addr addr, length length, handle handle, lkey lkey, rkey rkey }
            "ibv_mw" IbvMw { rkey rkey, type mw_type }
            "ibv_qp" IbvQp { qp_context qp_context, srq srq, handle handle, qp_num qp_num,
                state state, qp_type qp_type }
            "ibv_qp_ex" IbvQpEx { wr_id wr_id, wr_flags wr_flags,
                wr_atomic_cmp_swp wr_atomic_cmp_swp, wr_atomic_fetch_add wr_atomic_fetch_add,
                wr_bind_mw wr_bind_mw, wr_local_inv wr_local_inv, wr_rdma_read wr_rdma_read,
                wr_rdma_write wr_rdma_write, wr_rdma_write_imm wr_rdma_write_imm,
                wr_send wr_send, wr_send_imm wr_send_imm, wr_send_inv wr_send_inv,
                wr_send_tso wr_send_tso, wr_set_ud_addr wr_set_ud_addr,
                wr_set_xrc_srqn wr_set_xrc_srqn, wr_set_inline_data wr_set_inline_data,
                wr_set_inline_data_list wr_set_inline_data_list, wr_set_sge wr_set_sge,
                wr_set_sge_list wr_set_sge_list, wr_start wr_start, wr_complete wr_complete,
                wr_abort wr_abort }
            "ibv_cq" IbvCq { channel channel, cq_context cq_context, handle handle, cqe cqe }
            "ibv_cq_ex" IbvCqEx { comp_mask comp_mask, status status, wr_id wr_id,
                start_poll start_poll, next_poll next_poll, end_poll end_poll,
                read_opcode read_opcode, read_vendor_err read_vendor_err,
                read_byte_len read_byte_len, read_imm_data read_imm_data,
                read_qp_num read_qp_num, read_src_qp read_src_qp,
                read_wc_flags read_wc_flags, read_slid read_slid, read_sl read_sl,
                read_dlid_path_bits read_dlid_path_bits,
                read_completion_ts read_completion_ts, read_cvlan read_cvlan,
                read_flow_tag read_flow_tag, read_tm_info read_tm_info,
                read_completion_wallclock_ns read_completion_wallclock_ns }
            "verbs_srq" VerbsSrq { srq_type srq_type, xrcd xrcd, cq cq, srq_num srq_num }
            "ibv_wc" IbvWc { status status, opcode opcode, imm_data imm, qp_num qp_num,
                src_qp src_qp, wc_flags wc_flags, pkey_index pkey_index, sl sl }
            "ibv_send_wr" IbvSendWr { next next, sg_list sg_list, num_sge num_sge,
                opcode opcode, send_flags send_flags, imm_data imm, wr wr,
                qp_type remote_srqn, bind_mw tail }
            "ibv_recv_wr" IbvRecvWr { next next, sg_list sg_list, num_sge num_sge }
            "ibv_ops_wr" IbvOpsWr { wr_id wr_id, next next, opcode opcode, flags flags,
                tm unexpected_cnt }
            "ibv_wc_tm_info" IbvWcTmInfo { tag tag, priv app_ctx }
            "ibv_mw_bind_info" IbvMwBindInfo { mr mr, addr addr, length length,
                mw_access_flags mw_access_flags }
            "ibv_qp_init_attr_ex" IbvQpInitAttrEx { send_cq send_cq, recv_cq recv_cq,
                srq srq, cap cap, qp_type qp_type, sq_sig_all sq_sig_all,
                comp_mask comp_mask, pd pd, xrcd xrcd, create_flags create_flags,
                rwq_ind_tbl rwq_ind_tbl, source_qpn source_qpn,
                send_ops_flags send_ops_flags }
            "ibv_qp_open_attr" IbvQpOpenAttr { qp_num qp_num, xrcd xrcd,
                qp_context qp_context, qp_type qp_type }
            "ibv_srq_init_attr_ex" IbvSrqInitAttrEx { attr attr, comp_mask comp_mask,
                srq_type srq_type, pd pd, xrcd xrcd, cq cq, tm_cap tm_cap }
            "ibv_cq_init_attr_ex" IbvCqInitAttrEx { cqe cqe, cq_context cq_context,
                channel channel, comp_vector comp_vector, wc_flags wc_flags,
                comp_mask comp_mask, flags flags, parent_domain parent_domain }
            "verbs_device_ops" VerbsDeviceOps { match_table match_table,
                match_device match_device, alloc_context alloc_context,
                import_context import_context, alloc_device alloc_device,
                uninit_device uninit_device }
            "verbs_match_ent" VerbsMatchEnt { u driver_id, vendor vendor, device device,
                kind kind }
        );
        use crate::verbs::cmd::size as n;
        for (name, words) in [
            ("ibv_get_context", n::GET_CONTEXT),
            ("ib_uverbs_get_context_resp", n::GET_CONTEXT_RESP),
            ("ibv_alloc_pd", n::ALLOC_PD),
            ("ib_uverbs_alloc_pd_resp", n::ALLOC_PD_RESP),
            ("ibv_reg_mr", n::REG_MR),
            ("ib_uverbs_reg_mr_resp", n::REG_MR_RESP),
            ("ibv_rereg_mr", n::REREG_MR),
            ("ib_uverbs_rereg_mr_resp", n::REREG_MR_RESP),
            ("ibv_alloc_mw", n::ALLOC_MW),
            ("ib_uverbs_alloc_mw_resp", n::ALLOC_MW_RESP),
            ("ibv_open_xrcd", n::OPEN_XRCD),
            ("ib_uverbs_open_xrcd_resp", n::OPEN_XRCD_RESP),
            ("ibv_create_cq", n::CREATE_CQ),
            ("ib_uverbs_create_cq_resp", n::CREATE_CQ_RESP),
            ("ibv_resize_cq", n::RESIZE_CQ),
            ("ib_uverbs_resize_cq_resp", n::RESIZE_CQ_RESP),
            ("ibv_modify_cq", n::MODIFY_CQ),
            ("ibv_create_srq", n::CREATE_SRQ),
            ("ibv_create_xsrq", n::CREATE_XSRQ),
            ("ib_uverbs_create_srq_resp", n::CREATE_SRQ_RESP),
            ("ibv_modify_srq", n::MODIFY_SRQ),
            ("ibv_query_srq", n::QUERY_SRQ),
            ("ibv_create_qp_ex", n::EX_CREATE_QP),
            ("ib_uverbs_ex_create_qp_resp", n::EX_CREATE_QP_RESP),
            ("ibv_query_qp", n::QUERY_QP),
            ("ibv_modify_qp", n::MODIFY_QP),
            ("ib_uverbs_create_ah_resp", n::CREATE_AH_RESP),
            ("ibv_query_port", n::QUERY_PORT),
            ("ib_uverbs_ex_query_device_resp", n::EX_QUERY_DEVICE_RESP),
        ] {
            check(format!("sizeof(struct {name})"), words * 4);
        }
        let source = std::env::var("RDMA_CORE").expect("RDMA_CORE: see check-layout");
        let file = std::env::temp_dir().join(format!("xroce-layout-{}.c", std::process::id()));
        std::fs::write(&file, c).expect("written");
        let ok = std::process::Command::new("cc")
            .args(["-fsyntax-only", "-I", &source, "-I"])
            .arg(format!("{source}/include"))
            .arg(&file)
            .status()
            .expect("a C compiler")
            .success();
        let _ = std::fs::remove_file(&file);
        assert!(ok);
    }
}
