// Arguments and standard streams (WASI, preview 1).

@external("wasi_snapshot_preview1", "args_sizes_get")
declare function args_sizes_get(count: usize, size: usize): i32;
@external("wasi_snapshot_preview1", "args_get")
declare function args_get(list: usize, buffer: usize): i32;
@external("wasi_snapshot_preview1", "fd_read")
declare function fd_read(descriptor: i32, pieces: usize, count: i32, read: usize): i32;
@external("wasi_snapshot_preview1", "fd_write")
declare function fd_write(descriptor: i32, pieces: usize, count: i32, written: usize): i32;
@external("wasi_snapshot_preview1", "proc_exit")
declare function proc_exit(code: i32): void;

// An argument; empty where there is none.
export function argument(index: i32): string {
  const sizes = new StaticArray<u32>(2);
  const start = changetype<usize>(sizes);
  args_sizes_get(start, start + 4);
  if (<u32>index >= sizes[0]) return "";
  const list = new StaticArray<u32>(sizes[0]);
  const buffer = new StaticArray<u8>(sizes[1]);
  args_get(changetype<usize>(list), changetype<usize>(buffer));
  const end = changetype<usize>(buffer) + sizes[1];
  return String.UTF8.decodeUnsafe(list[index], end - list[index], true);
}

// All of stdin.
export function stdin(): string {
  const size = 65536;
  const piece = new StaticArray<u32>(3);
  const start = changetype<usize>(piece);
  let all = new Uint8Array(0);
  while (true) {
    const buffer = new Uint8Array(size);
    piece[0] = <u32>buffer.dataStart;
    piece[1] = size;
    if (fd_read(0, start, 1, start + 8) != 0) proc_exit(1);
    const read = <i32>piece[2];
    if (read == 0) return String.UTF8.decode(all.buffer);
    const more = new Uint8Array(all.length + read);
    more.set(all);
    more.set(buffer.subarray(0, read), all.length);
    all = more;
  }
}

function write(descriptor: i32, text: string): void {
  const bytes = Uint8Array.wrap(String.UTF8.encode(text));
  const piece = new StaticArray<u32>(3);
  const start = changetype<usize>(piece);
  let done = 0;
  while (done < bytes.length) {
    piece[0] = <u32>(bytes.dataStart + done);
    piece[1] = bytes.length - done;
    if (fd_write(descriptor, start, 1, start + 8) != 0) proc_exit(1);
    done += <i32>piece[2];
  }
}

// Writes to stdout.
export function print(text: string): void {
  write(1, text);
}

// What the compiler calls where something is wrong.
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  write(2, message ? message : "the policy failed");
  proc_exit(1);
}
