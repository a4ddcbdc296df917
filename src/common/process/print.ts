// Tells whoever has started the program something on one of its standard streams.

let pending: Promise<unknown> = Promise.resolve();

/** Writes a text. That nobody reads it any more, or that there is no room for it, changes nothing else. */
export function print(stream: NodeJS.WriteStream, text: string | Uint8Array): void {
  stream.once('error', () => {});
  const written = new Promise<void>((resolve) => stream.write(text, () => resolve()));
  pending = Promise.all([pending, written]);
}

/** Resolves when all that was printed is out, or cannot be: a pipe takes a part of a long text at a time. */
export async function printed(): Promise<void> {
  await pending;
}
