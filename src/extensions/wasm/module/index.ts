// Modules as they are given: what is checked and changed before they are compiled.

export { type CheckedModule, checkModule, type HostSignatures } from './checked-module.js';
export { ModuleError } from './sections.js';
