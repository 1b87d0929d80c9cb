// SPDX-License-Identifier: GPL-2.0

//! The common structure of all verbs objects.

/// Defines a verbs object: the C structure of ib_core, then fields of ours, the provider's data
/// last.
///
/// ib_core allocates `size_ib_x` bytes, so the C structure is at offset 0 and nothing wants more
/// alignment than the allocator gives. A reference to the type means that the create operation
/// has placed every field.
macro_rules! object {
    (
        $(#[$meta:meta])*
        pub struct $name:ident<P: Provider>($raw:ident, $data:ty) {
            $($field:ident: $type:ty),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        pub struct $name<P: Provider> {
            ib: Opaque<$crate::bindings::$raw>,
            $(pub(crate) $field: $type,)*
            data: $data,
        }

        // SAFETY: The C part may be used from any thread under ib_core's rules, which its
        // functions enforce themselves; the fields are `Send + Sync`.
        unsafe impl<P: Provider> Send for $name<P> {}

        // SAFETY: As above.
        unsafe impl<P: Provider> Sync for $name<P> {}

        impl<P: Provider> $name<P> {
            /// Bytes that ib_core has to allocate for one object.
            pub(crate) const SIZE: usize = {
                ::core::assert!(::core::mem::offset_of!(Self, ib) == 0);
                ::core::assert!(
                    ::core::mem::align_of::<Self>() <= ::core::mem::align_of::<u64>()
                );
                ::core::mem::size_of::<Self>()
            };

            /// Turns ib_core's pointer into a reference.
            ///
            /// # Safety
            ///
            /// `ib` must be an object of a device of provider `P` whose create operation
            /// succeeded and whose destroy operation has not ended for all of `'a`.
            #[allow(dead_code, reason = "not every kind of object needs it")]
            pub(crate) unsafe fn from_raw<'a>(ib: *mut $crate::bindings::$raw) -> &'a Self {
                // CAST: `ib` is the first field of a `repr(C)` structure.
                // SAFETY: Valid and initialised by contract.
                unsafe { &*ib.cast::<Self>() }
            }

            /// Places the fields behind the C object: the last step of a create operation.
            ///
            /// # Safety
            ///
            /// `ib` must be the object that ib_core passed to the create operation of provider
            /// `P`, not initialised yet, and nobody else may use it meanwhile.
            #[allow(dead_code, reason = "not every kind of object needs it")]
            pub(crate) unsafe fn place(
                ib: *mut $crate::bindings::$raw,
                $($field: $type,)*
                data: $data,
            ) {
                let this = ib.cast::<Self>();
                // SAFETY: ib_core allocated `Self::SIZE` bytes and nobody reads the fields before
                // the create operation has returned (contract).
                unsafe {
                    $((&raw mut (*this).$field).write($field);)*
                    (&raw mut (*this).data).write(data);
                }
            }

            /// Drops the fields behind the C object: the last step of a destroy operation.
            ///
            /// # Safety
            ///
            /// `ib` must have been given to [`Self::place`]; no reference to the object may be
            /// left, and none may be made afterwards.
            #[allow(dead_code, reason = "not every kind of object needs it")]
            pub(crate) unsafe fn unplace(ib: *mut $crate::bindings::$raw) {
                let this = ib.cast::<Self>();
                // SAFETY: Placed, and not used any more (contract).
                unsafe {
                    ::core::ptr::drop_in_place(&raw mut (*this).data);
                    $(::core::ptr::drop_in_place(&raw mut (*this).$field);)*
                }
            }

            /// The C object.
            #[allow(dead_code, reason = "not every kind of object needs it")]
            pub(crate) fn as_raw(&self) -> *mut $crate::bindings::$raw {
                self.ib.get()
            }

            /// The provider's data.
            pub fn data(&self) -> &$data {
                &self.data
            }

            /// The device that the object belongs to.
            pub fn device(&self) -> &$crate::device::Device<P> {
                // SAFETY: ib_core sets `device` before the create operation; a device outlives
                // its objects, since its unregistration destroys them first.
                unsafe { $crate::device::Device::from_raw((*self.ib.get()).device) }
            }
        }
    };
}

pub(crate) use object;
