// Waits for all that a server needs before it takes traffic, or a listener before it is used. Each such thing is a target with a name,
// which /init_dump shows until it is ready.

/** Something that is waited for. */
export interface InitTarget {
  readonly name: string;
  /** It is there, or will not come: it is not waited for any more. Further calls do nothing. */
  ready(): void;
}

export class InitManager {
  /** As /init_dump shows it: `Server`, `Listener-local-init-manager listener_0`. */
  readonly name: string;
  readonly #targets = new Set<InitTarget>();
  #onReady: (() => void) | undefined;

  constructor(name: string) {
    this.name = name;
  }

  /** May be called before wait(), or while another target is not ready. */
  add(name: string): InitTarget {
    const target: InitTarget = {
      name,
      ready: () => {
        if (this.#targets.delete(target)) this.#check();
      },
    };
    this.#targets.add(target);
    return target;
  }

  /** Calls back, once, when all targets are ready; immediately if they are already. */
  wait(onReady: () => void): void {
    this.#onReady = onReady;
    this.#check();
  }

  /** Resolves when all targets are ready, or when `ended` is aborted. */
  whenReady(ended: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        ended.removeEventListener('abort', end);
        resolve();
      };
      if (ended.aborted) return resolve();
      ended.addEventListener('abort', end);
      this.wait(end);
    });
  }

  get unreadyTargets(): string[] {
    return Array.from(this.#targets, ({ name }) => name);
  }

  #check(): void {
    if (this.#targets.size > 0) return;
    const onReady = this.#onReady;
    this.#onReady = undefined;
    onReady?.();
  }
}
