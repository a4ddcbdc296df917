// What is wrong with a format: which operator, and where.

export class FormatError extends Error {
  override readonly name = 'FormatError';
  /** Index of the character in the format string at which the operator begins. */
  readonly position: number;

  constructor(what: string, format: string, position: number) {
    super(`${what} at position ${position} of format ${JSON.stringify(format)}`);
    this.position = position;
  }
}
