// The part of WASI that Envoy offers: standard output as logs, the environment, time and random bytes. There are no files.

import { randomFillSync } from 'node:crypto';
import { Errno, Result } from '../abi.js';
import type { Vm } from '../contexts/context.js';
import { nowNs } from './context-functions.js';
import { type HostTable, host } from './host-function.js';

/** Of one write. */
const MAX_VECTORS = 1024;
const MAX_WRITE_BYTES = 64 * 1024;

const notImplemented = () => Errno.NotImplemented;

export const WASI_FUNCTIONS: HostTable = {
  fd_write: host('iiii>i', write),
  fd_read: host('iiii>i', notImplemented),
  fd_seek: host('ilii>i', () => Errno.Success),
  fd_close: host('i>i', () => Errno.Success),
  fd_fdstat_get: host('ii>i', describeFile),
  fd_fdstat_set_flags: host('ii>i', notImplemented),
  fd_prestat_get: host('ii>i', () => Errno.BadFile),
  fd_prestat_dir_name: host('iii>i', () => Errno.BadFile),
  path_open: host('iiiiillii>i', notImplemented),
  path_create_directory: host('iii>i', notImplemented),
  path_remove_directory: host('iii>i', notImplemented),
  path_rename: host('iiiiii>i', notImplemented),
  path_unlink_file: host('iii>i', notImplemented),
  path_filestat_get: host('iiiii>i', notImplemented),
  environ_get: host('ii>i', environment),
  environ_sizes_get: host('ii>i', environmentSizes),
  args_get: host('ii>i', () => Errno.Success),
  args_sizes_get: host('ii>i', (vm, countAt: number, sizeAt: number) =>
    vm.memory.setU32(countAt, 0) && vm.memory.setU32(sizeAt, 0) ? Errno.Success : Errno.Fault,
  ),
  clock_time_get: host('ili>i', time),
  random_get: host('ii>i', random),
  sched_yield: host('>i', () => Errno.Success),
  poll_oneoff: host('iiii>i', notImplemented),
  // The toolchain's own trap follows.
  proc_exit: host('i>', () => undefined),
};

/** Logs what is written to standard output or standard error. */
function write(vm: Vm, file: number, vectors: number, count: number, writtenAt: number): Errno {
  if (file !== 1 && file !== 2) return Errno.BadFile;
  if (count >>> 0 > MAX_VECTORS) return Errno.Fault;
  const parts: string[] = [];
  let length = 0;
  for (let i = 0; i < count; i++) {
    const vector = vm.memory.bytes(vectors + i * 8, 8);
    if (vector === undefined) return Errno.Fault;
    const text = vm.memory.text(vector.readUInt32LE(0), vector.readUInt32LE(4));
    if (text === undefined) return Errno.Fault;
    length += text.length;
    if (length > MAX_WRITE_BYTES) return Errno.Fault;
    parts.push(text);
  }
  const text = parts.join('');
  if (text !== '') {
    const line = text.endsWith('\n') ? text.slice(0, -1) : text;
    if (vm.context.log(file === 1 ? 2 : 4, line) !== Result.Ok) return Errno.BadFile;
  }
  return vm.memory.setU32(writtenAt, length) ? Errno.Success : Errno.Fault;
}

/** Describes standard output and standard error, which can only be written. */
function describeFile(vm: Vm, file: number, at: number): Errno {
  if (file !== 1 && file !== 2) return Errno.BadFile;
  const isWritten = vm.memory.setU64(at, 0n) && vm.memory.setU64(at + 8, 64n) && vm.memory.setU64(at + 16, 0n);
  return isWritten ? Errno.Success : Errno.Fault;
}

function environment(vm: Vm, listAt: number, textAt: number): Errno {
  for (const entry of vm.settings.environment) {
    const bytes = Buffer.from(`${entry}\0`);
    if (!vm.memory.setU32(listAt, textAt) || !vm.memory.set(textAt, bytes)) return Errno.Fault;
    listAt += 4;
    textAt += bytes.length;
  }
  return Errno.Success;
}

function environmentSizes(vm: Vm, countAt: number, sizeAt: number): Errno {
  const { environment: entries } = vm.settings;
  const size = entries.reduce((sum, entry) => sum + Buffer.byteLength(entry) + 1, 0);
  return vm.memory.setU32(countAt, entries.length) && vm.memory.setU32(sizeAt, size) ? Errno.Success : Errno.Fault;
}

function time(vm: Vm, clock: number, _precision: bigint, at: number): Errno {
  if (clock !== 0 && clock !== 1) return Errno.NotSupported;
  return vm.memory.setU64(at, nowNs(vm)) ? Errno.Success : Errno.Fault;
}

function random(vm: Vm, at: number, length: number): Errno {
  const bytes = vm.memory.bytes(at, length);
  if (bytes === undefined) return Errno.Fault;
  randomFillSync(bytes);
  return Errno.Success;
}
