// Waits for everything that has to be there before a server takes traffic, or a listener is used: each is a target with a
// name, which /init_dump shows as long as it is not ready.

/** Something that is waited for. */
export interface InitTarget {
  readonly name: string;
  /** It is there, or will not come: nobody waits for it any more. Further calls do nothing. */
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

  /** Targets may be added as long as there is one that is not ready, or before wait() is called. */
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

  /** Calls back, once, when all targets are ready; at once when they are. */
  wait(onReady: () => void): void {
    this.#onReady = onReady;
    this.#check();
  }

  /** Resolves when all targets are ready, or when `ended` says that nobody waits any more. */
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
