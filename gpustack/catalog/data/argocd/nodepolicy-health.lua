-- Health of a NodePolicy for Argo CD: resource.customizations.health.gpustack.dev_NodePolicy in the ConfigMap argocd-cm.
-- A roll-out that waits is healthy, or a cluster would be "progressing" for the weeks in which windows are closed.

local function condition(name)
  local conditions = obj.status ~= nil and obj.status.conditions or {}
  for _, each in ipairs(conditions) do
    if each.type == name then
      return each
    end
  end
  return {}
end

local function told(each, otherwise)
  if each.message ~= nil and each.message ~= "" then
    return each.message
  end
  return otherwise
end

-- Reasons for which a roll-out waits because somebody wants it to.
local chosen = { Paused = true, Held = true, WindowClosed = true }

local generation = obj.metadata.generation or 0
local observed = obj.status ~= nil and obj.status.observedGeneration or 0
local ready, stalled, rolled = condition("Ready"), condition("Stalled"), condition("RolledOut")
local annotations = obj.metadata.annotations or {}
local paused = annotations["gpustack.dev/paused"]

if stalled.status == "True" then
  return { status = "Degraded", message = told(stalled, "The policy can't be carried out") }
end
if observed < generation or ready.status ~= "True" then
  return { status = "Progressing", message = told(ready, "The reconciler has not seen the policy yet") }
end
if paused ~= nil then
  return { status = "Suspended", message = "Paused: " .. paused }
end
if rolled.status ~= "True" and rolled.reason == "BreakerOpen" then
  return { status = "Degraded", message = told(rolled, "Failures have stopped the roll-out") }
end
if rolled.status ~= "True" and chosen[rolled.reason] then
  return { status = "Suspended", message = told(rolled, rolled.reason) }
end
if rolled.status == "True" then
  return { status = "Healthy", message = told(rolled, "All nodes are as the policy says") }
end
return { status = "Healthy", message = told(rolled, "Some nodes are not yet as the policy says") }
