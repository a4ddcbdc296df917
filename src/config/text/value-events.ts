// What a reader of a text meets, in the order of the text and with the places: for who needs more than the plain values.

export interface ValueEvents {
  /** A map or a list begins. */
  open(what: 'map' | 'list', at: number): void;
  /** The innermost one is over. */
  close(end: number): void;
  /** A key of the innermost map; its value follows. */
  key(name: string, from: number, to: number): void;
  scalar(value: unknown, from: number, to: number): void;
}
