// Goes before the module that tap loads into each process and thread of a test, to note which files it loads: for coverage and for
// `tap --changed`, which are not used here. That would take a thread and a message for every module, as long as many a test itself,
// also in the programs that tests start, and would change their stacks.

import module from 'node:module';

const { register } = module;
module.register = (specifier, ...rest) => {
  if (!String(specifier).includes('/@tapjs/processinfo/')) register(specifier, ...rest);
};
globalThis[Symbol.for('@tapjs/processinfo.ProcessInfoNodeData')] = { files: [], sources: {} };
delete process.env.NODE_OPTIONS;
