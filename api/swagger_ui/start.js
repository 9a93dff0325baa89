SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  // Otherwise the document's address is sent to validator.swagger.io.
  validatorUrl: null,
});
