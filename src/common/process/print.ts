// Tells whoever has started the program something on one of its standard streams.

/** Writes a text. That nobody reads it any more, or that there is no room for it, changes nothing else. */
export function print(stream: NodeJS.WriteStream, text: string | Uint8Array): void {
  stream.once('error', () => {});
  stream.write(text);
}
