# SPDX-License-Identifier: GPL-2.0
"""Memory that makes every task wait that touches it, userfaultfd(2); as libselftest/guard.h."""
import ctypes
import fcntl
import mmap
import os
import struct

PAGE = mmap.PAGESIZE
_SYS_USERFAULTFD = 323
_UFFD_API, _MISSING = 0xAA, 1
_IOCTL_API, _IOCTL_REGISTER, _IOCTL_ZEROPAGE = 0xC018AA3F, 0xC020AA00, 0xC020AA04


class Guarded:
    """Some pages, the first of which is not there before give()."""

    def __init__(self, pages):
        self.size = pages * PAGE
        self._map = mmap.mmap(-1, self.size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for i in range(1, pages):
            self._map[i * PAGE] = 0
        self._fd = ctypes.CDLL(None, use_errno=True).syscall(
            _SYS_USERFAULTFD, os.O_CLOEXEC | os.O_NONBLOCK
        )
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), 'userfaultfd')
        fcntl.ioctl(self._fd, _IOCTL_API, struct.pack('QQQ', _UFFD_API, 0, 0))
        fcntl.ioctl(self._fd, _IOCTL_REGISTER, struct.pack('QQQQ', self.address, PAGE, _MISSING, 0))

    def give(self):
        """The first page, an empty one."""
        fcntl.ioctl(self._fd, _IOCTL_ZEROPAGE, struct.pack('QQQq', self.address, PAGE, 0, 0))
        os.close(self._fd)
