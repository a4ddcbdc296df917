// Events of a text parser, in text order and with offsets, for consumers that need more than the plain values.

export interface ValueEvents {
  /** A map or a list begins. */
  open(what: 'map' | 'list', at: number): void;
  /** The innermost map or list ends. */
  close(end: number): void;
  /** A key of the innermost map; its value follows. */
  key(name: string, from: number, to: number): void;
  scalar(value: unknown, from: number, to: number): void;
}
