// SPDX-License-Identifier: GPL-2.0

//! Events for one open uverbs file.
//!
//! C header: `include/rdma/uverbs_types.h` (`struct ib_uverbs_file`).
//!
//! ib_core has two kinds of events. Events of an object go to the file that has the object, and
//! events of the device go to all files. An XRC target that is known only by its number has no
//! object in any file. Its events are sent as events of the device, but only to the files that
//! asked for them.

use crate::{
    bindings,
    events::{
        waiting::WaitingEvents,
        Gate,
        QpEvent, //
    }, //
};
use core::ops::Deref;
use kernel::{
    impl_has_work,
    new_work,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
    workqueue::{
        Work,
        WorkItem, //
    }, //
};

/// The order of events that wait together: that in which they can have happened.
const ORDER: [QpEvent; 6] = [
    QpEvent::CommunicationEstablished,
    QpEvent::SendQueueDrained,
    QpEvent::AccessError,
    QpEvent::RequestError,
    QpEvent::Fatal,
    QpEvent::LastWqeReached,
];

/// Which file, for comparison only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FileId(*const bindings::ib_uverbs_file);

impl FileId {
    pub(crate) fn of(file: *const bindings::ib_uverbs_file) -> Self {
        Self(file)
    }
}

#[pin_data]
struct Cell {
    file: *mut bindings::ib_uverbs_file,
    device: *mut bindings::ib_device,
    handle: u32,
    /// [`Provider::RCV_QP_EVENT`](crate::provider::Provider::RCV_QP_EVENT).
    flag: u32,
    #[pin]
    gate: Gate,
    /// Number of the queue pair that the waiting events are of.
    qp_num: Atomic<u32>,
    waiting: WaitingEvents,
    #[pin]
    work: Work<Cell>,
}

// SAFETY: The pointers are used inside the gate only, for what any thread may do; else they are
// compared.
unsafe impl Send for Cell {}

// SAFETY: As above.
unsafe impl Sync for Cell {}

impl_has_work! {
    impl HasWork<Self> for Cell { self.work }
}

impl WorkItem for Cell {
    type Pointer = Arc<Cell>;

    fn run(this: Arc<Cell>) {
        let Some(_inside) = this.gate.enter() else {
            return;
        };
        let events = this.waiting.take(ORDER);
        let qp_num = this.qp_num.load(ordering::Relaxed);
        for event in events {
            let kind = event as u32 | this.flag;
            // SAFETY: Inside the gate the file and its device exist (invariant of `FileEvents`);
            // a work item runs in process context.
            unsafe { bindings::xrdma_uverbs_notify(this.file, this.device, kind, qp_num) };
        }
    }
}

/// Gives a file events of one queue pair that it knows by its number. Does nothing once the object
/// of the file that it was made for is gone.
///
/// # Invariants
///
/// While the gate is open, the file and its device exist.
#[derive(Clone)]
pub struct FileEvents(Arc<Cell>);

impl FileEvents {
    /// Tells the file; false when it cannot hear of it any more. Any context. Events of one kind
    /// that come before the first was delivered become one.
    pub fn event(&self, kind: QpEvent, qp_num: u32) -> bool {
        let Some(_inside) = self.0.gate.enter() else {
            return false;
        };
        self.0.qp_num.store(qp_num, ordering::Relaxed);
        self.0.waiting.add(kind, self.0.clone());
        true
    }

    /// The file.
    pub fn file(&self) -> FileId {
        FileId(self.0.file)
    }

    /// Handle, in the file, of the object that asked for the events.
    pub fn handle(&self) -> u32 {
        self.0.handle
    }
}

/// The one of them that ends them all when it is dropped. Process context.
pub(crate) struct OwnedFileEvents(FileEvents);

impl OwnedFileEvents {
    /// Makes them for an object of a file. `flag` is set in the type of each event.
    ///
    /// # Safety
    ///
    /// `uobject` must be an object that is being made, of the file of a device that exists; the
    /// value must be dropped when that object is destroyed, or before.
    pub(crate) unsafe fn new(uobject: *const bindings::ib_uobject, flag: u32) -> Result<Self> {
        // SAFETY: By contract; all this is set before anything is done with the object.
        let (file, device, id) = unsafe {
            (
                (*uobject).ufile,
                (*(*uobject).context).device,
                (*uobject).id,
            )
        };
        let init = pin_init!(Cell {
            file,
            device,
            handle: id as u32,
            flag,
            gate <- Gate::new(),
            qp_num: Atomic::new(0),
            waiting: WaitingEvents::new(),
            work <- new_work!("FileEvents::work"),
        });
        let cell = Arc::pin_init(init, GFP_KERNEL_ACCOUNT)?;
        cell.gate.open();
        // INVARIANT: By contract, and uverbs destroys the objects of a file before the file, and
        // before its device is unregistered.
        Ok(Self(FileEvents(cell)))
    }
}

impl Deref for OwnedFileEvents {
    type Target = FileEvents;

    fn deref(&self) -> &FileEvents {
        &self.0
    }
}

impl Drop for OwnedFileEvents {
    fn drop(&mut self) {
        let cell = &self.0 .0;
        cell.gate.close();
        // SAFETY: The work item is initialised and lives as long as `cell`. Nobody gets past the
        // gate to queue it again, so that none of our code is left on the system work queue when
        // the module goes.
        unsafe { bindings::xrdma_ib_flush_work(Work::raw_get(&raw const cell.work)) };
    }
}
