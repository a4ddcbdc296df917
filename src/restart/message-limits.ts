// How often a peer may say what: an honest one says each thing as often as there is a reason to.

export class MessageLimits {
  readonly #counts = new Map<string, number>();

  /** Counts a message of that kind. Returns why its sender is not heard any more, when it has sent more than `max` of them. */
  count(kind: string, max: number): string | undefined {
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    return count > max ? `it sent more than ${max} messages of kind '${kind}'` : undefined;
  }
}
