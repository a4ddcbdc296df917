// Links and evaluates the files of a module in the calling thread.
//
// Each version of a module is a graph of its own (vm.SourceTextModule), so that a changed file is loaded beside the old one, and
// stack traces show the user's file and line. Packages and Node's own modules are imported as usual: all versions share them. The
// classes of vm modules exist only in threads with SCRIPT_THREAD_OPTIONS, so this file must not import them by name.

import vm, { constants, type Module, Script } from 'node:vm';
import * as api from '../../api/index.js';
import type { SourceFile } from '../image.js';

/** The files of a module, from the disk or from an image. */
export interface SourceFiles {
  has(url: string): boolean;
  /** Throws if the file cannot be used. */
  read(url: string): SourceFile;
}

/** Returns the exports of the module whose entry file is `entry`. Rejects with the exception if a file throws one. */
export async function evaluateScript(entry: string, files: SourceFiles): Promise<Readonly<Record<string, unknown>>> {
  const linker = new ScriptLinker(files);
  return linker.evaluate(entry);
}

class ScriptLinker {
  readonly #files: SourceFiles;
  readonly #modules = new Map<string, Module>();

  constructor(files: SourceFiles) {
    this.#files = files;
  }

  async evaluate(url: string): Promise<Readonly<Record<string, unknown>>> {
    const module = this.#file(url);
    await this.#run(module);
    return module.namespace as Readonly<Record<string, unknown>>;
  }

  async #run(module: Module): Promise<void> {
    if (module.status === 'unlinked')
      await module.link((specifier, { identifier }) => this.#find(specifier, identifier));
    await module.evaluate();
  }

  /** Returns the module that `specifier` names in the file `referrer`. */
  async #find(specifier: string, referrer: string): Promise<Module> {
    if (specifier === API) return this.#synthetic(API, api);
    const url = this.#urlOf(specifier, referrer);
    if (url !== undefined) return this.#file(url);
    const key = `${new URL('.', referrer)} ${specifier}`;
    return this.#modules.get(key) ?? this.#synthetic(key, await importFrom(referrer, specifier));
  }

  /** Returns the URL of a file of the module; undefined: the specifier names a package or a module of Node. */
  #urlOf(specifier: string, referrer: string): string | undefined {
    if (!/^(?:\.{0,2}\/|file:)/.test(specifier)) return undefined;
    const { href } = new URL(specifier, referrer);
    // As in TypeScript's module resolution, './a.js' may name './a.ts'.
    const typed = href.replace(/\.(m?)js$/, '.$1ts');
    if (typed !== href && !this.#files.has(href) && this.#files.has(typed)) return typed;
    if (/\.(?:cjs|node)$/.test(href) || href.includes('/node_modules/')) return undefined;
    return href;
  }

  #file(url: string): Module {
    let module = this.#modules.get(url);
    if (module !== undefined) return module;
    const { isJson, text } = this.#files.read(url);
    if (isJson) return this.#synthetic(url, { default: JSON.parse(text) });
    module = new vm.SourceTextModule(text, {
      identifier: url,
      initializeImportMeta: (meta) => {
        meta.url = url;
      },
      importModuleDynamically: async (specifier: string) => {
        const found = await this.#find(specifier, url);
        await this.#run(found);
        return found;
      },
    });
    this.#modules.set(url, module);
    return module;
  }

  #synthetic(key: string, exports: Readonly<Record<string, unknown>>): Module {
    const known = this.#modules.get(key);
    if (known !== undefined) return known;
    const names = Object.keys(exports);
    const module = new vm.SyntheticModule(
      names,
      () => {
        for (const name of names) module.setExport(name, exports[name]);
      },
      { identifier: key },
    );
    this.#modules.set(key, module);
    return module;
  }
}

/** The specifier by which scripts import Baton's API. */
const API = 'baton';

/** Imports a package or a module of Node as the file `referrer` would. */
async function importFrom(referrer: string, specifier: string): Promise<Readonly<Record<string, unknown>>> {
  const load = new Script('(specifier) => import(specifier)', {
    filename: referrer,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  }).runInThisContext() as (specifier: string) => Promise<Readonly<Record<string, unknown>>>;
  return load(specifier);
}
