// Disables the module that tap loads into each process and thread of a test to record the loaded files, for coverage and `tap
// --changed`, which are not used here. It needs a thread and a message for every module, which takes as long as many tests, also
// in the programs that tests start, and it changes their stacks.

import module from 'node:module';

const { register } = module;
module.register = (specifier, ...rest) => {
  if (!String(specifier).includes('/@tapjs/processinfo/')) register(specifier, ...rest);
};
globalThis[Symbol.for('@tapjs/processinfo.ProcessInfoNodeData')] = { files: [], sources: {} };
delete process.env.NODE_OPTIONS;
