// Delays ACKs on the aggregated stream: after an ACK a server may send resources that depend on the update, so an ACK may have to
// wait.

export class AnswerGate {
  #isOpen = true;
  #onChange: (isOpen: boolean) => void = () => {};

  /** Registers the only observer, which is called now and after each change. */
  observe(onChange: (isOpen: boolean) => void): void {
    this.#onChange = onChange;
    onChange(this.#isOpen);
  }

  /** Opens or closes the gate. Opening releases pending ACKs; while it is closed, ACKs wait. */
  set(isOpen: boolean): void {
    if (isOpen === this.#isOpen) return;
    this.#isOpen = isOpen;
    this.#onChange(isOpen);
  }
}
