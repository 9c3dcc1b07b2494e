// For Node: the same with Dawn, whose library and backend are the arguments.
const [dawn, backend] = process.argv.slice(2);
const { create, globals } = require(dawn);
Object.assign(globalThis, globals);
create([`backend=${backend}`]).requestAdapter().then((adapter) => process.exit(adapter ? 0 : 9));
