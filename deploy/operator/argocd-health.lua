-- How Argo CD shows an IstioCanaryDeployment. `obj` is the object; what is returned is its health.
-- deploy/operator/argocd-cm.yaml holds the same program for the ConfigMap argocd-cm.
local function condition(kind)
  for _, one in ipairs((obj.status or {}).conditions or {}) do
    if one.type == kind then
      return one
    end
  end
  return {}
end

local status = obj.status
if status == nil then
  return {status = "Progressing", message = "no operator has seen it yet"}
end
if (status.observedGeneration or 0) < (obj.metadata.generation or 0) then
  return {status = "Progressing", message = "the operator has not looked at the newest change yet"}
end
local stalled = condition("Stalled")
if stalled.status == "True" then
  return {status = "Degraded", message = stalled.message or ""}
end
if obj.spec ~= nil and obj.spec.paused == true then
  return {status = "Suspended", message = "paused by spec.paused in phase " .. (status.phase or "")}
end
local reconciling = condition("Reconciling")
if reconciling.status == "True" then
  return {status = "Progressing", message = reconciling.message or ""}
end
local ready = condition("Ready")
if ready.status == "True" then
  return {status = "Healthy", message = status.phase or ""}
end
return {status = "Progressing", message = ready.message or status.phase or ""}
