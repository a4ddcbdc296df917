// Limits how often a peer may send each kind of message: a correct peer sends each only when there is a reason.

export class MessageLimits {
  readonly #counts = new Map<string, number>();

  /** Counts a message of that kind. Returns the reason for closing the link when there were more than `max` of them. */
  count(kind: string, max: number): string | undefined {
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    return count > max ? `it sent more than ${max} messages of kind '${kind}'` : undefined;
  }
}
