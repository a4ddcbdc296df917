// Writes to the standard streams for the user who started the program.

let pending: Promise<unknown> = Promise.resolve();

/** Writes a text. Ignores write errors: the reader may have closed the stream. */
export function print(stream: NodeJS.WriteStream, text: string | Uint8Array): void {
  stream.once('error', () => {});
  const written = new Promise<void>((resolve) => stream.write(text, () => resolve()));
  pending = Promise.all([pending, written]);
}

/** Resolves when all printed text has been written or has failed. A pipe takes a long text in parts. */
export async function printed(): Promise<void> {
  await pending;
}
