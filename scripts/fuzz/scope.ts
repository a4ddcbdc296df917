// The resources of a part of a fuzz run, which are released at its end, and its findings.

/** A defect that a user must never see. The message has everything needed to investigate it. */
export class Finding extends Error {}

/** Ends everything that was started in it, in reverse order. Replaces the test object for the end-to-end harness. */
export class Scope {
  readonly #actions: (() => unknown)[] = [];

  teardown(action: () => unknown): void {
    this.#actions.push(action);
  }

  async end(): Promise<void> {
    for (const action of this.#actions.splice(0).reverse()) await action();
  }
}

/** Returns the part of a log that shows a defect, or undefined. */
export function defectIn(log: string): string | undefined {
  const match = /^.*(?: died|internal error|exception|unhandled|Assertion|\s{4,}at \S.*:\d+:\d+).*$/m.exec(log);
  if (match === null) return undefined;
  return log.slice(Math.max(0, match.index - 1000), match.index + 3000);
}
