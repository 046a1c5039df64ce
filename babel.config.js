// Jest needs it: the packages of JupyterLab are ES modules.
module.exports = require('@jupyterlab/testutils/lib/babel.config');
