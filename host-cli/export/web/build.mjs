// SPDX-License-Identifier: BSD-2-Clause
// node build.mjs SOURCE BUILD: bundles SOURCE into BUILD/page.html, which vprof puts the data into. BUILD holds the
// node_modules. The policy in the page allows this one script and this one style sheet, and no network at all.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [source, build] = process.argv.slice(2).map((path) => resolve(path));
const modules = join(build, "node_modules");
const esbuild = createRequire(join(build, "package.json"))("esbuild");

const result = await esbuild.build({
  entryPoints: [join(source, "main.js"), join(source, "page.css")],
  bundle: true,
  minify: true,
  write: false,
  metafile: true,
  outdir: build,
  absWorkingDir: build,
  nodePaths: [modules],
  format: "iife",
  target: ["chrome100", "firefox100", "safari15"],
  legalComments: "none",
  logLevel: "warning",
});

function output(name) {
  const text = result.outputFiles.find((file) => file.path.endsWith(name)).text;
  if (/<\/(script|style)/i.test(text)) throw new Error(`${name} would end its own tag`);
  return text.trim();
}

// What is bundled brings its licence along; a text that many share stands there once.
function licences() {
  const names = new Set(Object.keys(result.metafile.inputs)
    .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean));
  const texts = new Map();
  for (const name of [...names].sort()) {
    const text = readFileSync(join(modules, name, "LICENSE"), "utf8").trim();
    const { version } = JSON.parse(readFileSync(join(modules, name, "package.json")));
    texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
  }
  return [...texts].map(([text, users]) => `${users.join(", ")}:\n\n${text}\n`).join("\n").replaceAll("--", "- -");
}

const script = output("main.js");
const style = output("page.css");
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'`;
const parts = { policy, script, style, licences: licences() };
const page = readFileSync(join(source, "page.html"), "utf8").replace(/@(policy|script|style|licences)@/g, (_, name) => parts[name]);
if (page.split("@vprof-data@").length !== 2) throw new Error("the page has not one place for the data");
writeFileSync(join(build, "page.html"), page);
