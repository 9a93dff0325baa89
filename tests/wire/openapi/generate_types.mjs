// Writes the types of a gateway's operations beside this script: node generate_types.mjs OPENAPI_JSON
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const BYTES = ts.factory.createTypeReferenceNode("Uint8Array");
const types = await openapiTS(pathToFileURL(resolve(process.argv[2])), {
  defaultNonNullable: false, // what has a default may be left out of a request
  transform: (schema) => (schema.format === "binary" ? BYTES : undefined),
});
writeFileSync(new URL("gateway.d.ts", import.meta.url), astToString(types));
