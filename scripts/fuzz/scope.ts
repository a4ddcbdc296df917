// What a part of a fuzz run holds, and gives back at its end; and what it may find.

/** Something that a user must never see. The message holds everything needed to look into it. */
export class Finding extends Error {}

/** Ends what was started in it, the last first. Stands in for the test that the end-to-end harness usually serves. */
export class Scope {
  readonly #actions: (() => unknown)[] = [];

  teardown(action: () => unknown): void {
    this.#actions.push(action);
  }

  async end(): Promise<void> {
    for (const action of this.#actions.splice(0).reverse()) await action();
  }
}

/** The part of a log that tells of a defect; undefined when there is none. */
export function defectIn(log: string): string | undefined {
  const match = /^.*(?: died|internal error|exception|unhandled|Assertion|\s{4,}at \S.*:\d+:\d+).*$/m.exec(log);
  if (match === null) return undefined;
  return log.slice(Math.max(0, match.index - 1000), match.index + 3000);
}
